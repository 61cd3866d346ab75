"""Tests of projects with RTQ["SHARDS"]."""
