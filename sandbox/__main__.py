"""`python -m sandbox`: the same as `manage.py sandbox`, started without Django."""

import sys

from sandbox import program
from sandbox.addresses import Ports
from sandbox.folder import NoSandbox, data_folder

if __name__ == "__main__":
    try:
        program.run(data_folder(), ports=Ports.of_environment())
    except NoSandbox as error:
        sys.exit(str(error))
