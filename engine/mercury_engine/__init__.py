"""The model side: tokens and tensors, no LSP, no asyncio, no open files."""
