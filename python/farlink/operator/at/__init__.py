"""AT commands: the dialogue with a modem, without clock and serial port, and profiles of modems."""

from farlink.operator.at.dialogue import Dialogue as Dialogue
from farlink.operator.at.dialogue import State as State
from farlink.operator.at.profiles import Profile as Profile
from farlink.operator.at.profiles import load as load
