"""The protocol: transport, handlers and messages. Nothing else knows LSP."""
