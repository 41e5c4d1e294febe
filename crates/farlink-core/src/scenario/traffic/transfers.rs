use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use crate::ConfigError;
use crate::units::{Count, EventRate, Seconds};

/// Short transfers such as web pages, each over a connection of its own: a `list`, or Poisson arrivals (`rate_per_s`, `bytes`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// The list of transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<Transfer>>,
    /// Mean number of transfers that begin per second; the gaps are exponentially distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<EventRate>,
    /// Length of each random transfer, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Count>,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// When it begins, in seconds after the start of the flow.
    pub at_s: Seconds,
    /// Length of the transfer, in bytes.
    pub bytes: Count,
}

/// When transfers begin and how long they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals<'a> {
    /// As listed.
    Listed(&'a [Transfer]),
    /// At random.
    Poisson {
        /// Mean number per second.
        rate_per_s: f64,
        /// Length of each.
        bytes: u64,
    },
}

impl Transfers {
    /// When the transfers begin. A checked scenario has one of the two forms.
    pub fn arrivals(&self) -> Arrivals<'_> {
        match (&self.list, self.rate_per_s, self.bytes) {
            (None, Some(rate), Some(bytes)) => Arrivals::Poisson { rate_per_s: rate.get(), bytes: bytes.whole() },
            (list, _, _) => Arrivals::Listed(list.as_deref().unwrap_or_default()),
        }
    }
}

impl Traffic for Transfers {
    fn is_endless(&self) -> bool {
        self.list.is_none()
    }

    fn check(&self) -> Result<(), ConfigError> {
        const FORMS: &str = "give list = [{ at_s = 0, bytes = 1e5 }, ...], or rate_per_s and bytes";
        match (&self.list, self.rate_per_s, self.bytes) {
            (Some(list), None, None) if list.is_empty() => Err(ConfigError::new("list", "there is no transfer", FORMS)),
            (Some(_), None, None) | (None, Some(_), Some(_)) => Ok(()),
            (Some(_), _, _) => Err(ConfigError::new("", "transfers are given as a list and at random", FORMS)),
            (None, Some(_), None) => Err(ConfigError::new("", "\"bytes\" is missing", FORMS)),
            (None, None, Some(_)) => Err(ConfigError::new("", "\"rate_per_s\" is missing", FORMS)),
            (None, None, None) => Err(ConfigError::new("", "no transfers are given", FORMS)),
        }
    }
}
