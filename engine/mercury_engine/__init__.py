"""The model side: tokens and tensors. No LSP, no asyncio, no open files."""
