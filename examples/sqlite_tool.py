"""A tool that reads a database, and a model that gets the query wrong first.

python examples/sqlite_tool.py
"""

import sqlite3

import surecall
from surecall import assistant, tool_call

db = sqlite3.connect(":memory:", check_same_thread=False)
db.executescript("""
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total REAL);
    INSERT INTO orders (customer, total) VALUES ('Ann', 12.5), ('Bob', 40.0), ('Ann', 7.5);
""")
db.execute("PRAGMA query_only = ON")


@surecall.tool(effect="read", timeout_s=5)
def query(sql: str, limit: int = 20) -> list[list[object]]:
    """Run one SELECT on the table orders(id, customer, total)."""
    try:
        return [list(row) for row in db.execute(sql).fetchmany(limit)]
    except sqlite3.Error as error:
        raise surecall.ToolFailed(
            "SQL_ERROR", str(error), hint="The columns are id, customer, total."
        ) from None


if __name__ == "__main__":
    script = surecall.ScriptedTransport(
        [
            assistant(None, tool_call("query", {"sql": "SELECT sum(price) FROM orders"})),
            assistant(
                None, tool_call("query", "{sql: 'SELECT sum(total) FROM orders', limit: '1'}")
            ),
            "The orders come to 60.",
        ]
    )
    result = surecall.run_sync(
        "What do all orders come to?", model="demo", tools=[query], transport=script
    )
    print(result)
