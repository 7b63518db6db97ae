-- Turns the data into other data, on which only a query that says what was asked is right.

INSERT INTO customers VALUES
  (9, 'Iris Lund', 'Lyon', 'iris@example.com', '2024-12-01'),
  (10, 'Jon Dahl', 'Oslo', 'jon@example.com', '2024-12-09');

INSERT INTO products VALUES (12, 'Vase', 'decoration', 31.00, 8);
UPDATE products SET stock = 0, price = 360.00 WHERE id = 4;
UPDATE products SET stock = 5 WHERE id = 10;

INSERT INTO orders VALUES
  (15, 3, '2024-03-30', 'cancelled'),
  (16, 3, '2024-11-02', 'delivered'),
  (17, 3, '2024-11-20', 'delivered'),
  (18, 3, '2024-12-05', 'open');

INSERT INTO order_items VALUES
  (21, 15, 9, 1, 45.00),
  (22, 16, 8, 3, 18.50),
  (23, 17, 11, 2, 22.00),
  (24, 18, 2, 1, 89.00),
  (25, 1, 9, 1, 45.00);
