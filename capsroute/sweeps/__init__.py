"""Many runs: planned, done in processes or on a cluster, kept in one store, read back as records."""
