-- Turns the data into other data, on which only a query that says what was asked is right.

INSERT INTO authors VALUES (7, 'Pia Nord', 'Norway', 1990);

INSERT INTO books VALUES
  (13, 'Harbour Songs', 1, 'poetry', 1961, 2),
  (14, 'Iron Roads', 4, 'history', 1988, 3);

INSERT INTO members VALUES (9, 'Xena Iver', '2024-05-01', 'premium');

INSERT INTO loans VALUES
  (19, 13, 5, '2024-06-10', '2024-07-01', NULL),
  (20, 4, 1, '2024-06-11', '2024-07-02', '2024-07-09'),
  (21, 4, 3, '2024-06-12', '2024-07-03', '2024-06-30');
