"""Each rewrite that is faster by a fifth or more, on a model of its own at sizes of real nets.

A row is (name, how many times faster it should be, options of the optimizer, builder).
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from benchmarks import micro_images as images
from benchmarks import micro_tokens as tokens

Micro = tuple[str, float, tuple[str, ...], Callable[[], onnx.ModelProto]]
FUSED = ("--opset", "fused")
LATENCY = ("--optimize-for", "latency")
FAST = ("--fp", "fast")

MICRO_MODELS: tuple[Micro, ...] = (
    ("Relu-Mul-Add into the next 1x1 Conv", 1.20, (), images.affine_before_point),
    ("Mul-Add per channel to BatchNormalization", 1.90, (), images.affine_of_channels),
    ("2 sibling Convs, Concat, BatchNormalization to one", 1.36, (), images.siblings_then_batchnorm),
    ("Slice of channels of Conv-Relu", 2.69, (), images.slice_of_channels),
    ("Conv1x1-AveragePool swapped", 1.80, (), images.point_then_pool),
    ("Resize-Conv1x1 swapped", 2.31, (), images.upsampling_then_point),
    ("cascade of MaxPools", 3.13, (), images.pyramid_of_pools),
    ("Relu-Pad-MaxPool", 1.37, (), images.pad_then_maxpool),
    ("ReduceMean of ReduceMean", 1.35, (), images.two_means),
    ("Resize half_pixel to asymmetric", 4.38, (), images.half_pixel_resize),
    ("Unsqueeze-Expand-Reshape to Resize", 12.3, (), images.upsampling_by_expand),
    ("Focus into Conv", 1.35, (), images.focus),
    ("PixelShuffle to DepthToSpace", 1.55, (), images.pixel_shuffle),
    ("depthwise Conv1D as Conv2D", 2.63, LATENCY, tokens.depthwise_sequence),
    ("3 Slices to one", 1.48, (), images.three_slices),
    ("Concat of Concat", 1.41, (), images.two_concats),
    ("Concat of Split", 2.08, (), images.split_then_concat),
    ("Softmax-Conv of a distribution to MatMul", 4.26, (), tokens.distribution_head),
    ("LayerNormalization by Reciprocal", 2.70, (), tokens.layernorm),
    ("RMSNormalization", 3.1, FUSED, tokens.rmsnorm),
    ("LayerNormalization over channels", 1.78, (), images.layernorm_of_channels),
    ("InstanceNormalization", 2.75, (), images.instancenorm),
    ("Gelu by Erf of a product", 1.46, FUSED, tokens.gelu_by_factor),
    ("Gelu by Tanh", 2.5, FUSED, tokens.gelu_tanh),
    ("HardSwish", 1.55, (), images.hardswish),
    ("HardSwish between Convs", 1.29, (), images.hardswish_between_convs),
    ("Mish", 4.35, LATENCY, images.mish),
    ("Mish between Convs", 2.6, LATENCY, images.mish_between_convs),
    ("Softplus", 2.56, LATENCY + FAST, images.softplus),
    ("Sigmoid", 2.26, (), images.sigmoid),
    ("Softmax", 2.09, (), tokens.softmax),
    ("LogSoftmax", 3.90, (), tokens.logsoftmax),
    ("LeakyRelu of two Relus", 2.70, (), images.leakyrelu_of_relus),
    ("LeakyRelu of Max", 1.54, (), images.leakyrelu_of_max),
    ("uniform PRelu to LeakyRelu", 2.26, (), images.uniform_prelu),
    ("PRelu between Convs", 2.06, LATENCY, images.prelu_between_convs),
    ("Clip of Min and Max", 2.01, (), images.clip_of_min_max),
    ("Relu of Where", 8.8, (), images.relu_of_where),
    ("Where of a mask to Add", 2.43, LATENCY, tokens.masked_scores),
    ("Where of a causal mask to Add", 1.85, FAST, tokens.causal_scores),
    ("Pow 2 to Mul", 1.79, (), images.square),
    ("Pow 0.5 to Sqrt", 7.0, (), images.root),
    ("Div to Mul", 1.34, (), images.quotient),
    ("affine chain", 1.66, (), images.affine_chain),
    ("MatMul of MatMul", 1.87, (), tokens.product_of_products),
    ("Gemm of Gemm", 1.75, (), tokens.linear_linear),
    ("Einsum of two to MatMul", 2.14, LATENCY, tokens.einsum_of_two),
    ("Einsum of one to Transpose", 1.45, (), tokens.einsum_of_one),
    ("RotaryEmbedding", 1.95, FUSED, tokens.rotary),
    ("first token before the last block", 8.8, (), tokens.first_token),
    ("last token before the head", 2.7, (), tokens.last_token),
    ("Expand before Add", 1.24, (), images.expanded_sum),
    ("Expand of a norm", 1.20, (), tokens.normalized_rows),
    ("ArgMax of Softmax", 1.51, (), tokens.largest_probability),
)
