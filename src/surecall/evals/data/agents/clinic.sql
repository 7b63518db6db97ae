-- A small clinic: doctors, patients, visits, and what was prescribed.

CREATE TABLE doctors ( -- who works there
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL, -- with the title, such as Dr Amara Diallo
  specialty TEXT NOT NULL, -- cardiology, dermatology, pediatrics or neurology
  room TEXT NOT NULL
);

CREATE TABLE patients ( -- who is treated
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  born_on TEXT NOT NULL, -- YYYY-MM-DD
  city TEXT NOT NULL
);

CREATE TABLE visits ( -- one row each time a patient sees a doctor
  id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patients (id),
  doctor_id INTEGER NOT NULL REFERENCES doctors (id),
  visited_on TEXT NOT NULL, -- YYYY-MM-DD
  reason TEXT NOT NULL, -- such as fever or follow-up
  fee INTEGER NOT NULL
);

CREATE TABLE prescriptions ( -- drugs prescribed at a visit
  id INTEGER PRIMARY KEY,
  visit_id INTEGER NOT NULL REFERENCES visits (id),
  drug TEXT NOT NULL,
  daily_dose_mg INTEGER NOT NULL,
  days INTEGER NOT NULL
);

INSERT INTO doctors VALUES
  (1, 'Dr Amara Diallo', 'cardiology', '2.04'),
  (2, 'Dr Boris Petrov', 'dermatology', '1.11'),
  (3, 'Dr Carmen Ruiz', 'pediatrics', '1.02'),
  (4, 'Dr Deng Wei', 'cardiology', '2.06'),
  (5, 'Dr Eva Holm', 'neurology', '3.01');

INSERT INTO patients VALUES
  (1, 'Ines Duarte', '1958-03-14', 'Porto'),
  (2, 'Jonas Falk', '1987-07-22', 'Malmo'),
  (3, 'Kira Petrova', '2016-11-02', 'Sofia'),
  (4, 'Liam Byrne', '1972-05-09', 'Cork'),
  (5, 'Mia Rossi', '2019-01-27', 'Turin'),
  (6, 'Noah Weiss', '1995-12-30', 'Graz'),
  (7, 'Olga Ivanova', '1949-08-18', 'Sofia'),
  (8, 'Pedro Alves', '2001-04-05', 'Porto'),
  (9, 'Rania Saleh', '1990-10-11', 'Cork');

INSERT INTO visits VALUES
  (1, 1, 1, '2024-01-09', 'chest pain', 120),
  (2, 2, 2, '2024-01-11', 'rash', 80),
  (3, 3, 3, '2024-01-16', 'fever', 60),
  (4, 4, 1, '2024-01-30', 'high blood pressure', 110),
  (5, 1, 1, '2024-02-13', 'follow-up', 70),
  (6, 5, 3, '2024-02-15', 'vaccination', 40),
  (7, 6, 2, '2024-02-28', 'mole check', 95),
  (8, 7, 4, '2024-03-05', 'palpitations', 130),
  (9, 4, 1, '2024-03-12', 'follow-up', 70),
  (10, 3, 3, '2024-03-20', 'cough', 60),
  (11, 8, 2, '2024-04-02', 'acne', 80),
  (12, 7, 4, '2024-04-16', 'follow-up', 75),
  (13, 1, 4, '2024-04-23', 'second opinion', 150),
  (14, 5, 3, '2024-05-07', 'fever', 60),
  (15, 2, 2, '2024-05-14', 'follow-up', 55),
  (16, 6, 1, '2024-05-28', 'chest pain', 120);

INSERT INTO prescriptions VALUES
  (1, 1, 'aspirin', 100, 30),
  (2, 2, 'hydrocortisone', 10, 14),
  (3, 3, 'paracetamol', 750, 5),
  (4, 4, 'lisinopril', 10, 90),
  (5, 5, 'aspirin', 100, 60),
  (6, 8, 'bisoprolol', 5, 30),
  (7, 9, 'lisinopril', 20, 90),
  (8, 10, 'amoxicillin', 1000, 7),
  (9, 11, 'adapalene', 5, 60),
  (10, 12, 'bisoprolol', 10, 60),
  (11, 13, 'aspirin', 75, 90),
  (12, 14, 'paracetamol', 500, 3),
  (13, 16, 'aspirin', 100, 10);
