"""Find out how far the judge can be trusted: check-judge, rejudge, probe."""
