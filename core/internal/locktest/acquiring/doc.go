package acquiring
