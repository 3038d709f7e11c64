"""How often a judge votes on a claim. Nothing here loads much: ``--help`` needs it."""

# As many votes as the script asks for, in place of an odd number.
ALWAYS = "always"
