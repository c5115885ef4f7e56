"""Scripts that workers of jobs run, as python SCRIPT; Cluster has them find this package."""
