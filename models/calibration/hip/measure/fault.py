class UserError(Exception):
    """A fault of the user or of the machine: one line, exit 2."""


class OurFault(Exception):
    """A fault of the programs: one line, exit 1."""
