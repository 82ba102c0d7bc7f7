package outages
