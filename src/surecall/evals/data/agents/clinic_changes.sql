-- Turns the data into other data, on which only a query that says what was asked is right.

INSERT INTO doctors VALUES (6, 'Dr Femi Ade', 'cardiology', '2.08');

INSERT INTO patients VALUES
  (10, 'Sara Toth', '1966-02-02', 'Sofia'),
  (11, 'Tom Uher', '2021-06-06', 'Graz');

INSERT INTO visits VALUES
  (17, 10, 3, '2024-06-04', 'follow-up', 90),
  (18, 7, 1, '2024-06-11', 'check-up', 65);

INSERT INTO prescriptions VALUES (14, 18, 'aspirin', 100, 30);
