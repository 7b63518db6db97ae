-- A town library: authors, books, members, and who borrowed what.

CREATE TABLE authors ( -- people who wrote the books
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  born_year INTEGER NOT NULL
);

CREATE TABLE books ( -- one row for each title
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  author_id INTEGER NOT NULL REFERENCES authors (id),
  genre TEXT NOT NULL, -- novel, history, cooking or poetry
  published_year INTEGER NOT NULL,
  copies INTEGER NOT NULL -- how many the library owns
);

CREATE TABLE members ( -- people with a library card
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  joined_on TEXT NOT NULL, -- YYYY-MM-DD
  level TEXT NOT NULL -- child, standard or premium
);

CREATE TABLE loans ( -- one row each time a book is borrowed
  id INTEGER PRIMARY KEY,
  book_id INTEGER NOT NULL REFERENCES books (id),
  member_id INTEGER NOT NULL REFERENCES members (id),
  loaned_on TEXT NOT NULL, -- YYYY-MM-DD
  due_on TEXT NOT NULL, -- YYYY-MM-DD
  returned_on TEXT -- YYYY-MM-DD; null until the book is back
);

INSERT INTO authors VALUES
  (1, 'Ingrid Solheim', 'Norway', 1951),
  (2, 'Kwame Mensah', 'Ghana', 1968),
  (3, 'Lucia Ferri', 'Italy', 1974),
  (4, 'Marek Dvorak', 'Czechia', 1939),
  (5, 'Nora Lindqvist', 'Sweden', 1982),
  (6, 'Omar Haddad', 'Lebanon', 1960);

INSERT INTO books VALUES
  (1, 'The Quiet Fjord', 1, 'novel', 1984, 4),
  (2, 'Letters to Bergen', 1, 'novel', 1991, 2),
  (3, 'Salt and Gold', 2, 'history', 2003, 3),
  (4, 'A River of Names', 2, 'novel', 2011, 5),
  (5, 'Stone Kitchens', 3, 'cooking', 2009, 2),
  (6, 'Bread of the South', 3, 'cooking', 2015, 6),
  (7, 'Clockwork Prague', 4, 'history', 1978, 1),
  (8, 'The Ninth Bridge', 4, 'novel', 1969, 2),
  (9, 'Northern Light', 5, 'poetry', 2014, 3),
  (10, 'Small Storms', 5, 'poetry', 2020, 1),
  (11, 'Winter Arithmetic', 5, 'novel', 2018, 4),
  (12, 'Empires of Cloth', 2, 'history', 1998, 2);

INSERT INTO members VALUES
  (1, 'Paul Adler', '2021-04-12', 'standard'),
  (2, 'Quinn Brady', '2021-10-03', 'premium'),
  (3, 'Rosa Costa', '2022-02-25', 'standard'),
  (4, 'Sven Dahl', '2022-07-14', 'child'),
  (5, 'Tara Evans', '2023-01-09', 'premium'),
  (6, 'Umar Farah', '2023-03-31', 'standard'),
  (7, 'Vera Gomez', '2023-11-20', 'child'),
  (8, 'Wim Hoek', '2024-02-05', 'standard');

INSERT INTO loans VALUES
  (1, 1, 1, '2024-01-08', '2024-01-29', '2024-01-25'),
  (2, 3, 2, '2024-01-10', '2024-01-31', '2024-02-06'),
  (3, 6, 3, '2024-01-15', '2024-02-05', '2024-02-01'),
  (4, 9, 2, '2024-02-02', '2024-02-23', '2024-02-20'),
  (5, 1, 5, '2024-02-11', '2024-03-03', '2024-03-10'),
  (6, 11, 4, '2024-02-19', '2024-03-11', '2024-03-05'),
  (7, 4, 6, '2024-03-01', '2024-03-22', '2024-03-22'),
  (8, 7, 1, '2024-03-04', '2024-03-25', '2024-04-02'),
  (9, 1, 3, '2024-03-18', '2024-04-08', '2024-04-01'),
  (10, 5, 5, '2024-04-02', '2024-04-23', NULL),
  (11, 10, 7, '2024-04-06', '2024-04-27', '2024-04-20'),
  (12, 3, 6, '2024-04-15', '2024-05-06', NULL),
  (13, 6, 2, '2024-05-03', '2024-05-24', '2024-05-20'),
  (14, 8, 5, '2024-05-10', '2024-05-31', NULL),
  (15, 12, 1, '2024-05-12', '2024-06-02', '2024-06-01'),
  (16, 2, 2, '2024-05-21', '2024-06-11', NULL),
  (17, 4, 5, '2024-06-03', '2024-06-24', NULL),
  (18, 9, 4, '2024-06-07', '2024-06-28', '2024-06-21');
