"""A bank of modems that are none: pseudo-terminals that speak AT, call each other by number, and lose their calls."""

from farlink.operator.bank.config import BankConfig as BankConfig
from farlink.operator.bank.config import ModemConfig as ModemConfig
from farlink.operator.bank.config import of_options as of_options
from farlink.operator.bank.config import read as read
from farlink.operator.bank.exchange import Exchange as Exchange
from farlink.operator.bank.modem import Modem as Modem
from farlink.operator.bank.ptys import Ports as Ports
from farlink.operator.bank.ptys import serve as serve
