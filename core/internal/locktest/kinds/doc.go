package kinds
