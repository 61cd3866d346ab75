"""Looking at jobs and acting on them: the readers, incidents, the pages of the admin, commands."""
