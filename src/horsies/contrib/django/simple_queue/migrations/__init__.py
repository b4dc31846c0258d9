"""The migrations of django-simple-queue under their names, then the step to horsies."""
