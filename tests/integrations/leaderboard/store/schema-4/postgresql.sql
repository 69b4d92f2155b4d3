CREATE TABLE board_competitions (
  id SERIAL NOT NULL,
  slug VARCHAR(48) NOT NULL,
  rules TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  epoch INTEGER NOT NULL,
  frozen BOOLEAN NOT NULL,
  blind BOOLEAN NOT NULL,
  revision INTEGER NOT NULL,
  final TEXT,
  ledger_head TEXT,
  invitation VARCHAR(64),
  PRIMARY KEY (id),
  UNIQUE (slug)
);
CREATE TABLE board_predictions (
  submission_id INTEGER NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (submission_id)
);
CREATE TABLE board_schema (
  version INTEGER NOT NULL,
  PRIMARY KEY (version)
);
CREATE TABLE board_sessions (
  digest BYTEA NOT NULL,
  token_digest BYTEA NOT NULL,
  began_at DOUBLE PRECISION NOT NULL,
  ends_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (digest)
);
CREATE INDEX board_sessions_of_token ON board_sessions (token_digest);
CREATE TABLE board_events (
  competition_id INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  kind VARCHAR(16) NOT NULL,
  team_id INTEGER,
  submission_id INTEGER,
  detail TEXT,
  PRIMARY KEY (competition_id, revision),
  FOREIGN KEY(competition_id) REFERENCES board_competitions (id)
);
CREATE TABLE board_teams (
  id SERIAL NOT NULL,
  competition_id INTEGER NOT NULL,
  name VARCHAR(64) NOT NULL,
  name_key VARCHAR(256) NOT NULL,
  token_digest BYTEA NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  series VARCHAR(100) DEFAULT '' NOT NULL,
  merged_into INTEGER,
  disqualified BOOLEAN DEFAULT false NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (competition_id, name_key),
  FOREIGN KEY(competition_id) REFERENCES board_competitions (id),
  UNIQUE (token_digest)
);
CREATE TABLE board_standings (
  competition_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  team_id INTEGER NOT NULL,
  submission_id INTEGER NOT NULL,
  value DOUBLE PRECISION NOT NULL,
  low DOUBLE PRECISION NOT NULL,
  high DOUBLE PRECISION NOT NULL,
  best_at DOUBLE PRECISION NOT NULL,
  query INTEGER NOT NULL,
  submissions INTEGER NOT NULL,
  charges INTEGER NOT NULL,
  certified BOOLEAN,
  measured FLOAT,
  PRIMARY KEY (competition_id, epoch, team_id),
  FOREIGN KEY(competition_id) REFERENCES board_competitions (id),
  FOREIGN KEY(team_id) REFERENCES board_teams (id)
);
CREATE TABLE board_submissions (
  id SERIAL NOT NULL,
  competition_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  team_id INTEGER NOT NULL,
  series VARCHAR(100) DEFAULT '' NOT NULL,
  digest BYTEA NOT NULL,
  name TEXT NOT NULL,
  claimed DOUBLE PRECISION,
  prior DOUBLE PRECISION NOT NULL,
  asked_at DOUBLE PRECISION NOT NULL,
  tried_at DOUBLE PRECISION NOT NULL,
  value DOUBLE PRECISION,
  low DOUBLE PRECISION,
  high DOUBLE PRECISION,
  threshold DOUBLE PRECISION,
  charged BOOLEAN,
  paid BOOLEAN,
  query INTEGER,
  told TEXT,
  improved BOOLEAN,
  picked BOOLEAN,
  PRIMARY KEY (id),
  UNIQUE (competition_id, epoch, team_id, digest),
  FOREIGN KEY(competition_id) REFERENCES board_competitions (id),
  FOREIGN KEY(team_id) REFERENCES board_teams (id)
);
CREATE INDEX board_submissions_improved ON board_submissions (competition_id, epoch, query) WHERE improved IS true;
CREATE INDEX board_submissions_of_team ON board_submissions (team_id, asked_at);
CREATE INDEX board_submissions_pending ON board_submissions (competition_id, team_id) WHERE query IS NULL;
CREATE TABLE board_compared (
  submission_id INTEGER NOT NULL,
  competition_id INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  team_id INTEGER NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (submission_id),
  FOREIGN KEY(competition_id) REFERENCES board_competitions (id),
  FOREIGN KEY(team_id) REFERENCES board_teams (id)
);
CREATE INDEX board_compared_of_team ON board_compared (competition_id, epoch, team_id);
INSERT INTO board_schema (version) VALUES (4);
