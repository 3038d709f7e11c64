"""``mind2web2 compare --why``: what moved a score, each cause with its share."""
