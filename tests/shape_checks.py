"""The checker of signatures; an int is a float to it, as it is to a user."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
