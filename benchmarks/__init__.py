"""What the optimizer costs and gains on models, and what others reach on the same models.

``python -m benchmarks`` runs everything here; ``python -m benchmarks.scaling`` looks at long chains.
The measuring process stays small and loads no model: the peak memory that the system reports for
a child starts at its parent's. Whatever needs onnx, numpy or onnxruntime runs in processes of its
own, which also keeps a crash in one of them from ending the run.
"""
