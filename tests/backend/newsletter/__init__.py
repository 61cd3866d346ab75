"""An app as another package would bring it: it uses django.tasks, and knows nothing of django_rtq."""
