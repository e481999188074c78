"""Small patterns with the fewest nodes they are known to need.

Each line is ``name | graph | nodes | options``; outputs are ``y``, ``y2``. Inputs are those of ``INPUTS`` that the graph names.
``f32(...)``, ``i64(...)`` and ``bool(...)`` are constants, ``n(4,3)`` draws one and ``u(4)`` one above 0.
"""

from __future__ import annotations

from dataclasses import dataclass

INPUTS = {
    "x": "float[N,4,6,6]", "z": "float[N,4,6,6]", "s": "float[B,S,8]", "s2": "float[B,S,8]", "m": "float[4,8]",
    "m2": "float[8,5]", "v": "float[8]", "b": "bool[B,S,8]", "b2": "bool[B,S,8]", "i": "int64[B,S]", "h": "float16[B,S,8]",
    "q": "float[B,2,S,4]", "k": "float[B,2,S,4]", "d": "double[B,S,8]", "j": "int32[B,S]", "c": "bool", "t": "float[2,12]",
    "one": "float[1,4,1,1]", "p": "float[N,8,3,5]", "r": "float[N,6,8,6]", "g": "float[N,2,4,1,5,1]", "a3": "float[B,S,3,5]",
}  # fmt: skip

BN = "f32(n(4)), f32(n(4)), f32(n(4)), f32(u(4))"
W3, W1 = "f32(n(4,4,3,3))", "f32(n(4,4,1,1))"

ELIMINATION = f"""
identity | a = Relu(x) y = Identity(a) | 1
identity of an output | a = Identity(x) y = Identity(a) | 1
dropout | a = Dropout(x) y = Relu(a) | 1
cast to the same type | a = Cast<to=1>(x) y = Relu(a) | 1
cast there and back | a = Cast<to=11>(x) e = Cast<to=1>(a) y = Relu(e) | 1
casts in a row | a = Cast<to=7>(j) y = Cast<to=1>(a) | 1
reshape to the same shape | w = Shape(s) a = Reshape(s, w) y = Relu(a) | 1
reshape by 0 | a = Reshape(s, i64([0,0,8])) y = Relu(a) | 1
transpose of nothing | a = Transpose<perm=[0,1,2]>(s) y = Relu(a) | 1
pad by nothing | a = Pad(x, i64([0,0,0,0,0,0,0,0])) y = Relu(a) | 1
slice of everything | a = Slice(x, i64([0]), i64([9223372036854775807]), i64([2])) y = Relu(a) | 1
concat of one | a = Concat<axis=1>(x) y = Relu(a) | 1
concat with nothing | e = Slice(x, i64([0]), i64([0]), i64([1])) a = Concat<axis=1>(x, e) y = Relu(a) | 1
split in one | a = Split<axis=1>(x, i64([4])) y = Relu(a) | 1
expand to its own shape | w = Shape(s) a = Expand(s, w) y = Relu(a) | 1
expand before a sum | a = Expand(one, i64([1,4,6,6])) y = Add(a, x) | 1
flatten of a matrix | a = Flatten(m) y = Relu(a) | 1
tile by one | a = Tile(s, i64([1,1,1])) y = Relu(a) | 1
resize by one | a = Resize(x, , f32([1,1,1,1])) y = Relu(a) | 1
gather of everything | a = Gather<axis=1>(x, i64([0,1,2,3])) y = Relu(a) | 1
pool of one pixel | a = MaxPool<kernel_shape=[1,1]>(x) y = Relu(a) | 1
plus 0 | a = Add(x, f32(0)) y = Relu(a) | 1
minus 0 | a = Sub(x, f32(0)) y = Relu(a) | 1
times 1 | a = Mul(f32(1), x) y = Relu(a) | 1
divided by 1 | a = Div(x, f32([1])) y = Relu(a) | 1
power of 1 | a = Pow(x, f32(1)) y = Relu(a) | 1
and true | a = And(b, bool(True)) y = Not(a) | 1
or false | a = Or(b, bool(False)) y = Not(a) | 1
not not | a = Not(b) e = Not(a) y = And(e, b2) | 1
neg neg | a = Neg(x) e = Neg(a) y = Relu(e) | 1
sum of one | a = Sum(x) y = Relu(a) | 1
reduction of one element | a = Unsqueeze(s, i64([1])) e = ReduceMax<axes=[1]>(a) w = Squeeze(e, i64([1])) y = Relu(w) | 1
dead node | a = Exp(x) y = Relu(x) | 1
twice the same | a = Exp(x) e = Exp(x) y = Add(a, e) | 2
the same up to order | a = Add(x, z) e = Add(z, x) y = Mul(a, e) | 2
the same up to defaults | a = Softmax(s) e = Softmax<axis=-1>(s) y = Add(a, e) | 2
random is not the same | a = RandomNormalLike(x) e = RandomNormalLike(x) y = Add(a, e) | 3
constant of constants | a = Add(f32(1), f32(2)) y = Mul(x, a) | 1
range of constants | a = Range(f32(0), f32(8), f32(1)) y = Add(s, a) | 1
constant of shape | a = ConstantOfShape(i64([8])) y = Add(s, a) | 1
argmax of softmax | a = Softmax(s) e = ArgMax<axis=-1>(a) y = Cast<to=1>(e) | 2
clip of relu | a = Relu(x) y = Clip(a, f32(0), f32(6)) | 1
relu relu | a = Relu(x) y = Relu(a) | 1
abs abs | a = Abs(x) y = Abs(a) | 1
floor floor | a = Floor(x) y = Floor(a) | 1
shape of an activation | a = Relu(x) w = Shape(a) y = Cast<to=1>(w) | 2
if with one way | e = Equal(i64(1), i64(1)) y = If(e) <then_branch = f () => (float[N,4,6,6] u) {{ u = Relu(x) }}, else_branch = g () => (float[N,4,6,6] w) {{ w = Neg(x) }}> | 1
if with equal branches | y = If(c) <then_branch = f () => (float[N,4,6,6] u) {{ u = Relu(x) }}, else_branch = g () => (float[N,4,6,6] w) {{ w = Relu(x) }}> | 1
where of true | y = Where(bool(True), x, x) | 1
unsqueeze and squeeze | a = Unsqueeze(s, i64([1])) e = Squeeze(a, i64([1])) y = Relu(e) | 1
"""

ALGEBRA = f"""
relu of clip | a = Clip(x, f32(-1), f32(6)) y = Relu(a) | 1
clip of clip | a = Clip(x, f32(0), f32(6)) y = Clip(a, f32(-1), f32(3)) | 1
min of max | a = Max(x, f32(-1)) y = Min(a, f32(1)) | 1
max of max | a = Max(x, f32(-1)) y = Max(a, f32(1)) | 1
factors | a = Mul(x, f32(2)) y = Mul(a, f32(3)) | 1
terms | a = Add(x, f32(2)) y = Sub(a, f32(3)) | 1
factor and divisor | a = Mul(x, f32(2)) y = Div(a, f32(3)) | 1
affine chain | a = Mul(s, f32(2)) e = Add(a, f32(1)) w = Mul(e, f32(3)) y = Add(w, f32(4)) | 2
affine of channels | a = Mul(x, f32(n(4,1,1))) y = Add(a, f32(n(4,1,1))) | 1
plus a negative | a = Neg(z) y = Add(x, a) | 1
minus a negative | a = Neg(z) y = Sub(x, a) | 1
not less | a = Less(i, i64(3)) y = Not(a) | 1
not equal twice | a = Not(b) e = Where(a, s, s2) y = Relu(e) | 2
reciprocal times | a = Reciprocal(z) y = Mul(x, a) | 1
one over times | a = Div(f32(1), z) y = Mul(a, x) | 1
division by a constant | y = Div(x, f32(4)) | 1
power of 2 | y = Pow(x, f32(2)) | 1
power of a half | a = Abs(x) y = Pow(a, f32(0.5)) | 2
power of minus 1 | y = Pow(x, f32(-1)) | 1
matmul of matmul | a = MatMul(s, f32(n(8,8))) y = MatMul(a, f32(n(8,4))) | 1
matmul times | a = MatMul(s, f32(n(8,4))) y = Mul(a, f32(0.5)) | 1
times before matmul | a = Mul(s, f32(0.5)) y = MatMul(a, f32(n(8,4))) | 1
scale of columns before matmul | a = Mul(s, f32(n(8))) y = MatMul(a, f32(n(8,4))) | 1
transposes | a = Transpose<perm=[0,2,1]>(s) e = Transpose<perm=[0,2,1]>(a) y = Relu(e) | 1
transposes that merge | a = Transpose<perm=[1,0,2]>(s) y = Transpose<perm=[0,2,1]>(a) | 1
transpose around an activation | a = Transpose<perm=[0,2,3,1]>(x) e = Relu(a) y = Transpose<perm=[0,3,1,2]>(e) | 1
transpose around a sum | a = Transpose<perm=[0,2,3,1]>(x) e = Add(a, f32(n(4))) y = Transpose<perm=[0,3,1,2]>(e) | 1
transpose around a softmax | a = Transpose<perm=[0,2,1]>(s) e = Softmax<axis=1>(a) y = Transpose<perm=[0,2,1]>(e) | 1
transpose around a mean | a = Transpose<perm=[0,2,3,1]>(x) y = ReduceMean<axes=[1,2], keepdims=0>(a) | 1
transpose around a concat | a = Transpose<perm=[0,2,3,1]>(x) e = Transpose<perm=[0,2,3,1]>(z) w = Concat<axis=3>(a, e) y = Transpose<perm=[0,3,1,2]>(w) | 1
transpose around a pad | a = Transpose<perm=[0,2,3,1]>(x) e = Pad(a, i64([0,1,1,0,0,1,1,0])) y = Transpose<perm=[0,3,1,2]>(e) | 1
transpose around a resize | a = Transpose<perm=[0,2,3,1]>(x) e = Resize(a, , f32([1,2,2,1])) y = Transpose<perm=[0,3,1,2]>(e) | 1
transpose around rows | a = Transpose<perm=[1,0,2]>(s) e = MatMul(a, f32(n(8,8))) w = Add(e, f32(n(8))) y = Transpose<perm=[1,0,2]>(w) | 2
transpose of size 1 | a = Unsqueeze(s, i64([1])) y = Transpose<perm=[0,2,1,3]>(a) | 1
"""

FUSION = f"""
conv batchnorm | a = Conv<pads=[1,1,1,1]>(x, {W3}) y = BatchNormalization(a, {BN}) | 1
conv batchnorm relu | a = Conv(x, {W3}) e = BatchNormalization(a, {BN}) y = Relu(e) | 2
convtranspose batchnorm | a = ConvTranspose(x, {W3}) y = BatchNormalization(a, {BN}) | 1
gemm batchnorm | a = Gemm(m, f32(n(8,4))) y = BatchNormalization(a, {BN}) | 1
batchnorm conv | a = BatchNormalization(x, {BN}) y = Conv(a, {W3}) | 1
batchnorm batchnorm | a = BatchNormalization(x, {BN}) y = BatchNormalization(a, {BN}) | 1
conv times | a = Conv(x, {W3}) y = Mul(a, f32(n(4,1,1))) | 1
conv plus | a = Conv(x, {W3}) y = Add(f32(n(1,4,1,1)), a) | 1
conv minus | a = Conv(x, {W3}) y = Sub(a, f32(n(4,1,1))) | 1
conv divided | a = Conv(x, {W3}) y = Div(a, f32(u(4,1,1))) | 1
conv times plus | a = Conv(x, {W3}) e = Mul(a, f32(n(4,1,1))) y = Add(e, f32(n(4,1,1))) | 1
input normalized before conv | a = Sub(x, f32(n(4,1,1))) e = Div(a, f32(u(4,1,1))) y = Conv(e, {W3}) | 1
times before conv | a = Mul(x, f32(0.5)) y = Conv<pads=[1,1,1,1]>(a, {W3}) | 1
affine between convs | a = Conv(x, {W1}) e = Relu(a) u = Mul(e, f32(n(4,1,1))) w = Add(u, f32(n(4,1,1))) y = Conv<pads=[1,1,1,1]>(w, {W3}) | 4
convs in a row | a = Conv(x, {W1}) y = Conv(a, {W3}) | 1
convs added | a = Conv<pads=[1,1,1,1]>(x, {W3}) e = Conv(x, {W1}) y = Add(a, e) | 1
repvgg | a = Conv<pads=[1,1,1,1]>(x, {W3}) e = Conv(x, {W1}) u = Add(a, e) w = BatchNormalization(x, {BN}) y = Add(u, w) | 1
conv plus its input | a = Conv<pads=[1,1,1,1]>(x, {W3}) y = Add(a, x) | 1
convs joined | a = Conv(x, {W1}) e = Conv(x, {W1}) y = Concat<axis=1>(a, e) | 1
channels of conv cut | a = Conv(x, {W1}) e = Relu(a) y = Slice(e, i64([0]), i64([2]), i64([1])) | 2
conv then pool | a = Conv(x, {W1}) y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(a) | 2
pad conv | a = Pad(x, i64([0,0,1,1,0,0,1,1])) y = Conv(a, {W3}) | 1
pad pad | a = Pad(x, i64([0,0,1,1,0,0,1,1])) y = Pad(a, i64([0,0,1,0,0,0,0,1])) | 1
pad averagepool | a = Pad(x, i64([0,0,1,1,0,0,1,1])) y = AveragePool<kernel_shape=[3,3]>(a) | 1
relu pad maxpool | e = Relu(x) a = Pad(e, i64([0,0,1,1,0,0,1,1])) y = MaxPool<kernel_shape=[3,3]>(a) | 2
matmul plus | a = MatMul(m, f32(n(8,5))) y = Add(a, f32(n(5))) | 1
matmul plus of rows | a = MatMul(s, f32(n(8,5))) y = Add(a, f32(n(5))) | 2
gemm plus | a = Gemm(m, f32(n(8,5))) y = Add(a, f32(n(5))) | 1
gemm times | a = Gemm(m, f32(n(8,5)), f32(n(5))) y = Mul(a, f32(2)) | 1
gemm gemm | a = Gemm(m, f32(n(8,8))) y = Gemm(a, f32(n(8,5)), f32(n(5))) | 1
transpose gemm | a = Transpose<perm=[1,0]>(m2) y = Gemm(a, f32(n(8,3))) | 1
views around gemm | a = Reshape(s, i64([-1,8])) e = Gemm(a, f32(n(8,5)), f32(n(5))) w = Shape<end=2>(s) u = Concat<axis=0>(w, i64([5])) y = Reshape<allowzero=1>(e, u) | 2
hardswish | a = Add(x, f32(3)) e = Clip(a, f32(0), f32(6)) u = Mul(x, e) y = Div(u, f32(6)) | 1
hardswish by factor | a = Add(x, f32(3)) e = Clip(a, f32(0), f32(6)) u = Mul(e, f32(0.16666667)) y = Mul(x, u) | 1
hardsigmoid | a = Add(x, f32(3)) e = Clip(a, f32(0), f32(6)) y = Div(e, f32(6)) | 1
sigmoid | a = Neg(x) e = Exp(a) u = Add(e, f32(1)) y = Div(f32(1), u) | 1
softsign | a = Abs(x) e = Add(a, f32(1)) y = Div(x, e) | 1
softplus | a = Exp(x) e = Add(a, f32(1)) y = Log(e) | 1 | --optimize-for nodes
relu of where | a = Greater(x, f32(0)) y = Where(a, x, f32(0)) | 1
relu of max | y = Max(x, f32(0)) | 1
leakyrelu of max | a = Mul(x, f32(0.1)) y = Max(x, a) | 1
leakyrelu of relus | a = Relu(x) e = Neg(x) u = Relu(e) w = Mul(u, f32(0.2)) y = Sub(a, w) | 1
leakyrelu of prelu | y = PRelu(x, f32([[[0.1]],[[0.1]],[[0.1]],[[0.1]]])) | 1
softmax | a = ReduceMax<axes=[-1]>(s) e = Sub(s, a) u = Exp(e) w = ReduceSum(u, i64([-1])) y = Div(u, w) | 1
logsoftmax | a = Softmax(s) y = Log(a) | 1
layernorm | a = ReduceMean<axes=[-1]>(s) e = Sub(s, a) u = Pow(e, f32(2)) w = ReduceMean<axes=[-1]>(u) o = Add(w, f32(1e-5)) l = Sqrt(o) y = Div(e, l) | 1
layernorm with weights | a = ReduceMean<axes=[-1]>(s) e = Sub(s, a) u = Mul(e, e) w = ReduceMean<axes=[-1]>(u) o = Add(w, f32(1e-5)) l = Sqrt(o) f = Div(e, l) g = Mul(f, f32(n(8))) y = Add(g, f32(n(8))) | 1
layernorm by reciprocal | a = ReduceMean<axes=[-1]>(s) e = Sub(s, a) u = Mul(e, e) w = ReduceMean<axes=[-1]>(u) o = Add(w, f32(1e-5)) l = Sqrt(o) f = Reciprocal(l) y = Mul(e, f) | 1
instancenorm | a = ReduceMean<axes=[2,3]>(x) e = Sub(x, a) u = Mul(e, e) w = ReduceMean<axes=[2,3]>(u) o = Add(w, f32(1e-5)) l = Sqrt(o) y = Div(e, l) | 1
layernorm of channels | a = ReduceMean<axes=[1]>(x) e = Sub(x, a) u = Mul(e, e) w = ReduceMean<axes=[1]>(u) o = Add(w, f32(1e-5)) l = Sqrt(o) y = Div(e, l) | 3
rmsnorm | a = Mul(s, s) e = ReduceMean<axes=[-1]>(a) u = Add(e, f32(1e-6)) w = Sqrt(u) l = Div(s, w) y = Mul(l, f32(n(8))) | 1 | --opset fused
gelu | a = Div(s, f32(1.41421356)) e = Erf(a) u = Add(e, f32(1)) w = Mul(s, u) y = Mul(w, f32(0.5)) | 1 | --opset fused
gelu by factor | a = Mul(s, f32(0.70710678)) e = Erf(a) u = Add(e, f32(1)) w = Mul(s, f32(0.5)) y = Mul(w, u) | 1 | --opset fused
gelu tanh | a = Mul(s, s) e = Mul(a, s) u = Mul(e, f32(0.044715)) w = Add(s, u) l = Mul(w, f32(0.7978846)) o = Tanh(l) f = Add(o, f32(1)) g = Mul(s, f) y = Mul(g, f32(0.5)) | 1 | --opset fused
attention | a = Transpose<perm=[0,1,3,2]>(k) e = MatMul(q, a) u = Mul(e, f32(0.5)) w = Softmax(u) y = MatMul(w, k) | 1 | --opset fused
rotary embedding | l = Slice(q, i64([0]), i64([2]), i64([3])) r = Slice(q, i64([2]), i64([4]), i64([3])) e = Neg(r) o = Concat<axis=-1>(e, l) u = Mul(q, f32(ones(1,1,1,4))) w = Mul(o, f32(ones(1,1,1,4))) y = Add(u, w) | 7
mean of an image | a = Conv(x, {W1}) y = ReduceMean<axes=[2,3]>(a) | 2
guard of a softmax | a = MatMul(s, f32(n(8,8))) e = Softmax(a) u = IsNaN(e) y = Where(u, f32(0), e) | 2
gated residual | a = GlobalAveragePool(x) e = Mul(x, a) y = Add(e, x) | 3
einsum of a product | y = Einsum<equation="bsd,df->bsf">(s, f32(n(8,5))) | 1
einsum of a permutation | y = Einsum<equation="bsd->sbd">(s) | 1
"""

MOVEMENT = f"""
concat of concat | a = Concat<axis=1>(x, z) y = Concat<axis=1>(a, x) | 1
concat of split | a, e = Split<axis=1>(x) u = Concat<axis=1>(a, e) y = Relu(u) | 1
slice of slice | a = Slice(x, i64([1]), i64([4]), i64([1])) y = Slice(a, i64([1]), i64([2]), i64([1])) | 1
slices of two axes | a = Slice(x, i64([1]), i64([5]), i64([2])) y = Slice(a, i64([1]), i64([5]), i64([3])) | 1
slice of concat | a = Concat<axis=1>(x, z) e = Slice(a, i64([4]), i64([8]), i64([1])) y = Relu(e) | 1
slices that are a split | a = Slice(x, i64([0]), i64([1]), i64([1])) e = Slice(x, i64([1]), i64([4]), i64([1])) y = Relu(a) y2 = Relu(e) | 3
gather of concat | a = Concat<axis=0>(m, f32(n(2,8))) y = Gather(a, i64(1)) | 1
reshape of reshape | a = Reshape(t, i64([3,8])) y = Reshape(a, i64([4,6])) | 1
flatten of reshape | a = Reshape(x, i64([0,4,36])) y = Flatten(a) | 1
squeeze of squeeze | a = Unsqueeze(s, i64([0])) e = Unsqueeze(a, i64([0])) y = Relu(e) | 2
reduce then unsqueeze | a = ReduceMean<axes=[2], keepdims=0>(s) y = Unsqueeze(a, i64([2])) | 1
reduce then squeeze | a = ReduceMean<axes=[2]>(s) y = Squeeze(a, i64([2])) | 1
reduce of reduce | a = ReduceMean<axes=[3]>(x) y = ReduceMean<axes=[2]>(a) | 1
gather then unsqueeze | a = Gather<axis=1>(x, i64(1)) y = Unsqueeze(a, i64([1])) | 1
slice then squeeze | a = Slice(x, i64([1]), i64([2]), i64([1])) y = Squeeze(a, i64([1])) | 1
shape gather concat reshape | w = Shape(s) a = Gather(w, i64([0])) e = Concat<axis=0>(a, i64([-1,4])) y = Reshape(s, e) | 1
heads split | w = Shape(s) a = Slice(w, i64([0]), i64([2])) e = Concat<axis=0>(a, i64([2,4])) u = Reshape(s, e) y = Transpose<perm=[0,2,1,3]>(u) | 2
heads merged | a = Transpose<perm=[0,2,1,3]>(q) w = Shape(a) e = Slice(w, i64([0]), i64([2])) u = Concat<axis=0>(e, i64([8])) y = Reshape(a, u) | 2
slice of shape | w = Shape(x) a = Slice(w, i64([2]), i64([4])) y = Cast<to=1>(a) | 2
gather of shape | w = Shape(x) a = Gather(w, i64([1])) y = Cast<to=1>(a) | 0
size of static axes | w = Shape(x) a = Slice(w, i64([1]), i64([4])) e = ReduceProd(a) u = Cast<to=1>(e) y = Mul(x, u) | 1
expand idiom of torch | w = Shape(s) a = Equal(w, i64([-1,-1,-1])) e = Where(a, i64([1,1,1]), w) u = Expand(s, e) y = Relu(u) | 1
pixel shuffle | a = Reshape(p, i64([0,2,2,2,3,5])) e = Transpose<perm=[0,1,4,2,5,3]>(a) y = Reshape(e, i64([0,2,6,10])) | 1
space to depth | a = Reshape(r, i64([0,6,4,2,3,2])) e = Transpose<perm=[0,3,5,1,2,4]>(a) y = Reshape(e, i64([0,24,4,3])) | 1
upsampling by expand | a = Expand(g, i64([1,1,1,2,1,2])) e = Reshape(a, i64([0,2,8,10])) y = Relu(e) | 3
resize by sizes | w = Shape(x) a = Slice(w, i64([0]), i64([2])) e = Concat<axis=0>(a, i64([12,12])) y = Resize(x, , , e) | 1
focus | a = Slice(x, i64([0,0]), i64([9,9]), i64([2,3]), i64([2,2])) e = Slice(x, i64([1,0]), i64([9,9]), i64([2,3]), i64([2,2])) u = Slice(x, i64([0,1]), i64([9,9]), i64([2,3]), i64([2,2])) w = Slice(x, i64([1,1]), i64([9,9]), i64([2,3]), i64([2,2])) o = Concat<axis=1>(a, e, u, w) y = Conv(o, f32(n(4,16,1,1))) | 1
pools in a cascade | a = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) e = MaxPool<kernel_shape=[5,5], pads=[2,2,2,2]>(x) y = Add(a, e) | 3
views around an activation | a = Reshape(s, i64([0,0,2,4])) e = Relu(a) y = Reshape(e, i64([0,0,8])) | 1
views around a constant sum | a = Unsqueeze(s, i64([1])) e = Add(a, f32(n(8))) y = Squeeze(e, i64([1])) | 1
batched transpose | a = Reshape(q, i64([-1,6,4])) e = Transpose<perm=[0,2,1]>(a) y = Reshape(e, i64([-1,2,4,6])) | 3
squeeze between transposes | a = Unsqueeze(a3, i64([0])) e = Transpose<perm=[3,1,2,0,4]>(a) y = Squeeze(e, i64([3])) | 1
parts of a split axis | a = Reshape(s, i64([0,0,2,4])) e = Transpose<perm=[2,0,1,3]>(a) u = Gather(e, i64(0)) w = Gather(e, i64(1)) y = Add(u, w) | 2
first token | a = MatMul(s, f32(n(8,5))) e = Relu(a) y = Gather<axis=1>(e, i64(0)) | 3
dq q | a = QuantizeLinear(x, f32(0.1)) e = DequantizeLinear(a, f32(0.1)) u = QuantizeLinear(e, f32(0.1)) y = DequantizeLinear(u, f32(0.1)) | 2
loop that never runs | y = Loop(i64(0), , x) <body = f (int64 o, bool g, float[N,4,6,6] u) => (bool g2, float[N,4,6,6] w) {{ g2 = Identity(g) w = Relu(u) }}> | 1
loop of two turns | y = Loop(i64(2), , x) <body = f (int64 o, bool g, float[N,4,6,6] u) => (bool g2, float[N,4,6,6] w) {{ g2 = Identity(g) w = Exp(u) }}> | 2
sequence of parts | a = SequenceConstruct(x, z) y = SequenceAt(a, i64(1)) | 1
"""


@dataclass(frozen=True)
class Probe:
    """One pattern."""

    name: str
    body: str
    nodes: int
    options: tuple[str, ...]


def probes() -> list[Probe]:
    """All patterns, in order."""
    found = []
    for line in (ELIMINATION + ALGEBRA + FUSION + MOVEMENT).splitlines():
        if line.strip():
            name, body, nodes, *options = (cell.strip() for cell in line.split(" | "))
            found.append(Probe(name, body, int(nodes), tuple(options[0].split()) if options else ()))
    return found
