"""Code completion and next edits from a local diffusion model, over LSP."""

__version__ = "0.1.0"
