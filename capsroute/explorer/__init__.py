"""The explorer: a page on a trained net. What it shows is computed apart from how it looks."""
