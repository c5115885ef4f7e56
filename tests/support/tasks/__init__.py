"""Small trainings: for the workers of a job, and for what they are compared with."""
