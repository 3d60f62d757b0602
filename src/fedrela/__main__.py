"""``python -m fedrela`` is the command ``fedrela``."""

from fedrela.cli.main import main

if __name__ == "__main__":
    main()
