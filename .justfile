# just test | lint | demo | ci

python := ".venv/bin/python"

# make the environment
setup:
    python3 -m venv .venv
    .venv/bin/pip install -e '.[test]'

# every test, doctests included
test *arguments:
    .venv/bin/pytest {{arguments}}

# lint, types, import contract
lint:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy
    .venv/bin/lint-imports

# mend what a program can mend
fix:
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# see it work
demo:
    .venv/bin/opmon demo

# the gate
ci:
    .ci/run
