"""Looking at jobs and acting on them: the inspector, incidents, the pages of the admin, commands."""
