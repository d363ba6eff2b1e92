"""Model files as others write them: config.json, safetensors and GGUF headers; bytes in, terms of
sizing out. Opens no file and guesses nothing: what is missing or cut is an error that names it."""
