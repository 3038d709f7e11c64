"""Write tasks: new tasks, and rehearsals that try a script or rubric file without a judge."""
