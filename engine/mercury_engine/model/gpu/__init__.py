"""The model on a GPU: our kernels, whole passes as CUDA graphs, and one pool of pages for all caches."""
