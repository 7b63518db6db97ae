-- A furnishing shop: its customers, its products, and what was ordered.

CREATE TABLE customers ( -- people who have an account
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  email TEXT NOT NULL,
  joined_on TEXT NOT NULL -- YYYY-MM-DD
);

CREATE TABLE products ( -- what is for sale
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  category TEXT NOT NULL, -- lighting, furniture, textiles or decoration
  price REAL NOT NULL, -- the list price today
  stock INTEGER NOT NULL -- pieces in the store room
);

CREATE TABLE orders ( -- one row for each order, without what is in it
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id),
  ordered_on TEXT NOT NULL, -- YYYY-MM-DD
  status TEXT NOT NULL -- open, shipped, delivered or cancelled
);

CREATE TABLE order_items ( -- the products of each order
  id INTEGER PRIMARY KEY,
  order_id INTEGER NOT NULL REFERENCES orders (id),
  product_id INTEGER NOT NULL REFERENCES products (id),
  quantity INTEGER NOT NULL,
  unit_price REAL NOT NULL -- what one piece cost in this order
);

INSERT INTO customers VALUES
  (1, 'Ada Berg', 'Oslo', 'ada@example.com', '2023-02-11'),
  (2, 'Ben Okafor', 'Lagos', 'ben@example.com', '2023-05-30'),
  (3, 'Chloe Martin', 'Lyon', 'chloe@example.com', '2023-09-04'),
  (4, 'Dai Sato', 'Osaka', 'dai@example.com', '2024-01-19'),
  (5, 'Elif Kaya', 'Izmir', 'elif@example.com', '2024-03-08'),
  (6, 'Finn Berg', 'Oslo', 'finn@example.com', '2024-06-21'),
  (7, 'Gita Rao', 'Pune', 'gita@example.com', '2024-08-02'),
  (8, 'Hana Novak', 'Brno', 'hana@example.com', '2024-11-15');

INSERT INTO products VALUES
  (1, 'Desk lamp', 'lighting', 39.90, 24),
  (2, 'Floor lamp', 'lighting', 89.00, 6),
  (3, 'Oak chair', 'furniture', 129.00, 12),
  (4, 'Oak table', 'furniture', 349.00, 3),
  (5, 'Bookshelf', 'furniture', 199.50, 0),
  (6, 'Wool rug', 'textiles', 159.00, 9),
  (7, 'Linen curtain', 'textiles', 54.00, 30),
  (8, 'Cushion', 'textiles', 18.50, 75),
  (9, 'Wall clock', 'decoration', 45.00, 15),
  (10, 'Mirror', 'decoration', 75.00, 0),
  (11, 'Door mat', 'textiles', 22.00, 40);

INSERT INTO orders VALUES
  (1, 1, '2024-01-05', 'delivered'),
  (2, 2, '2024-01-17', 'delivered'),
  (3, 1, '2024-02-02', 'delivered'),
  (4, 3, '2024-02-20', 'cancelled'),
  (5, 4, '2024-03-03', 'delivered'),
  (6, 5, '2024-03-15', 'shipped'),
  (7, 1, '2024-03-28', 'delivered'),
  (8, 6, '2024-07-01', 'delivered'),
  (9, 3, '2024-07-09', 'delivered'),
  (10, 7, '2024-08-14', 'shipped'),
  (11, 2, '2024-09-01', 'cancelled'),
  (12, 4, '2024-09-23', 'open'),
  (13, 5, '2024-10-05', 'open'),
  (14, 1, '2024-10-12', 'open');

INSERT INTO order_items VALUES
  (1, 1, 1, 2, 39.90),
  (2, 1, 8, 4, 18.50),
  (3, 2, 3, 4, 129.00),
  (4, 3, 6, 1, 149.00),
  (5, 4, 4, 1, 349.00),
  (6, 5, 9, 1, 45.00),
  (7, 5, 10, 1, 75.00),
  (8, 6, 7, 6, 54.00),
  (9, 7, 2, 1, 89.00),
  (10, 7, 8, 2, 18.50),
  (11, 8, 3, 2, 129.00),
  (12, 8, 4, 1, 329.00),
  (13, 9, 5, 1, 199.50),
  (14, 10, 1, 1, 39.90),
  (15, 10, 7, 2, 54.00),
  (16, 11, 6, 2, 159.00),
  (17, 12, 8, 10, 17.00),
  (18, 13, 3, 6, 119.00),
  (19, 14, 9, 2, 45.00),
  (20, 14, 1, 1, 37.50);
