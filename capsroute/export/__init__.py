"""A trained net for other programs: ONNX, torch.export, safetensors, or a folder for a model hub."""
