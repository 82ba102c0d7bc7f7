package clusters
