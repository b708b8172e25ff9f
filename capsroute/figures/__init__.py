"""Figures of nets and runs, each a function from what it shows to a `Drawing`."""
