"""What to paste into other programs, so that they use this server."""

import json


def greeting(site: str, token: str, *, shell: str, vim: str, plain: str, fragment: str = "") -> str:
    """Lines to paste. `token` says where the token is; the others are its forms in a shell, in Vim and in a plain
    setting. The `fragment` passes it to the playground."""
    zed = {"api_url": f"{site}/v1/completions", "model": "zeta2", "prompt_format": "zeta2", "max_output_tokens": 256}
    edits = {"provider": "open_ai_compatible_api", "open_ai_compatible_api": zed}
    programs = {
        "token": token,
        "playground": f"{site}/{fragment}",
        "OpenAI": f"export OPENAI_BASE_URL={site}/v1 OPENAI_API_KEY={shell}",
        "Zed": f'"edit_predictions": {json.dumps(edits)}',
        "Zed's token": f"export ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY={shell}",
        "llama.vim": f"let g:llama_config = {{'endpoint_fim': '{site}/infill', 'api_key': {vim}}}",
        "llama.vscode": f'"llama-vscode.endpoint": "{site}", "llama-vscode.api_key": "{plain}"',
    }
    lines = [f"  {name:<14}{value}" for name, value in programs.items()]
    return "\n".join([f"listening on {site}; docs/API.md says what it answers", *lines])
