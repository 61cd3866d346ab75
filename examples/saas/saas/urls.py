"""Pages of tenants, the admin, and the health of the workers for a load balancer."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from django_rtq.monitoring.health import health_view
from stock import views

urlpatterns = [
    path("", views.home, name="home"),
    path("uploads/", views.start_import, name="start_import"),
    path("uploads/<int:pk>/", views.show_import, name="import"),
    path("exports/", views.start_export, name="start_export"),
    path("exports/<int:pk>/", views.show_export, name="export"),
    path("exports/<int:pk>/stock.csv", views.download, name="download"),
    path("invoices/<int:pk>/pay/", views.pay, name="pay"),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("health/", health_view),
    path("admin/", admin.site.urls),
]
