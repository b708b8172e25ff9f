"""How fast and how small: every routing against the ordinary way of writing it, and against the machine's limit."""
