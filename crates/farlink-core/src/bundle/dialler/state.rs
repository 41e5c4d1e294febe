//! Output of a dialler: states of lines with their reasons, and orders for its driver.

use crate::time::Time;

/// State of a line (Zaghloul, figure 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// The line is not dialled yet; its [`Reason`] says what it waits for. A line that answers waits for a call.
    Waiting,
    /// The line is being dialled or answered, until its link is up.
    Connecting,
    /// The line carries packets.
    Connected,
    /// The call seems to have dropped, but not both ends have noticed yet.
    Silent,
    /// The call has dropped, and both ends know it.
    Dropped,
    /// The last attempt to dial failed.
    Failed,
    /// Too many attempts failed in a row; the line is not dialled for a while.
    Blocked,
    /// Someone has taken the line out of use.
    Held,
}

/// Defines [`Reason`]: each with its name, and what ends it.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $ends:literal;)+) => {
        /// Why a line is in its state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Reason] = &[$(Reason::$name),+];

            /// Its name in status and journal.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => $text,)+ }
            }

            /// The condition that ends it, in words.
            pub const fn ends(self) -> &'static str {
                match self { $(Reason::$name => $ends,)+ }
            }
        }
    };
}

reasons! {
    /// The bundle has not been started.
    NotStarted = "not-started", "the start of the bundle";
    /// The bundle has been stopped.
    Stopped = "stopped", "the start of the bundle";
    /// Only the primary line is dialled before it is connected (section 7.3).
    Primary = "primary", "the primary line connects, or is blocked";
    /// The lost primary line is not dialled while others are up (figure 7.7).
    LostPrimary = "lost-primary", "all other lines drop";
    /// As many lines as are wanted are in use.
    Spare = "spare", "a line in use fails";
    /// The line answers.
    Listening = "listening", "a call comes in";
    /// The port of the modem is not there.
    PortGone = "port-gone", "the port is back";
    /// The signal is too low.
    Signal = "signal", "the signal rises, or its last reading is too old";
    /// The airtime of the day is used up.
    AirtimeDay = "budget-airtime-day", "the next day begins";
    /// The airtime of the month is used up.
    AirtimeMonth = "budget-airtime-month", "the next month begins";
    /// The money of the day is used up.
    MoneyDay = "budget-money-day", "the next day begins";
    /// The money of the month is used up.
    MoneyMonth = "budget-money-month", "the next month begins";
    /// The airtime of all lines in a day is used up.
    BundleAirtimeDay = "bundle-budget-airtime-day", "the next day begins, or another call ends";
    /// The airtime of all lines in a month is used up.
    BundleAirtimeMonth = "bundle-budget-airtime-month", "the next month begins, or another call ends";
    /// The money of all lines for a day is used up.
    BundleMoneyDay = "bundle-budget-money-day", "the next day begins, or another call ends";
    /// The money of all lines for a month is used up.
    BundleMoneyMonth = "bundle-budget-money-month", "the next month begins, or another call ends";
    /// Someone holds the line.
    ByHand = "by-hand", "someone releases the line";
    /// The modem dials.
    Dialling = "dialling", "the modem connects, fails, or takes too long";
    /// The modem answers.
    Answering = "answering", "the modem connects, fails, or takes too long";
    /// The modem is connected, the link is being set up.
    StartingLink = "starting-link", "the link is up, fails, or takes too long";
    /// The link is up.
    Up = "up", "a drop";
    /// Probes over the line get no answer.
    Probes = "probes", "an answer, or the line is given up";
    /// The call has dropped: T_d of figure 7.2.
    Drop = "drop", "the pause is over";
    /// The bundle has ended, and the line with it.
    BundleEnded = "bundle-ended", "the pause is over";
    /// The call was dropped as a test.
    Injected = "injected", "the pause is over";
    /// The call has dropped, too often in a short time.
    Flapping = "flapping", "the pause is over";
    /// An attempt has failed: T_f of figure 7.2.
    AttemptFailed = "attempt-failed", "the pause is over";
    /// Max_Attempts of figure 7.2 failed in a row.
    Attempts = "attempts", "the pause is over";
}

impl CallState {
    /// Its name in status and journal.
    pub const fn name(self) -> &'static str {
        match self {
            CallState::Waiting => "waiting",
            CallState::Connecting => "connecting",
            CallState::Connected => "connected",
            CallState::Silent => "silent",
            CallState::Dropped => "dropped",
            CallState::Failed => "failed",
            CallState::Blocked => "blocked",
            CallState::Held => "held",
        }
    }
}

/// A change of a line's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it happens.
    pub at: Time,
    /// Index of the line.
    pub line: usize,
    /// The new state.
    pub state: CallState,
    /// Why it is in this state.
    pub reason: Reason,
}

/// Something that a person should know, since the bundle goes on without the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// A line is blocked.
    Blocked(usize),
    /// A line drops too often.
    Flapping(usize),
    /// A call has ended since the budget of its line, or of all lines, is used up.
    BudgetSpent(usize),
    /// The port of a line is gone.
    PortGone(usize),
    /// The modem of a line is of no use.
    ModemFailed(usize),
    /// A line does not answer.
    Silent(usize),
    /// A line is the primary no longer, since another one is better.
    Demoted(usize),
    /// No line is up any more.
    BundleDown,
    /// The first line is up.
    BundleUp,
}

impl Alert {
    /// The line; none if it is about the bundle.
    pub const fn line(self) -> Option<usize> {
        match self {
            Alert::Blocked(line)
            | Alert::Flapping(line)
            | Alert::BudgetSpent(line)
            | Alert::PortGone(line)
            | Alert::ModemFailed(line)
            | Alert::Silent(line)
            | Alert::Demoted(line) => Some(line),
            Alert::BundleDown | Alert::BundleUp => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Alert::Blocked(_) => "blocked",
            Alert::Flapping(_) => "flapping",
            Alert::BudgetSpent(_) => "budget-spent",
            Alert::PortGone(_) => "port-gone",
            Alert::ModemFailed(_) => "modem-failed",
            Alert::Silent(_) => "silent",
            Alert::Demoted(_) => "demoted",
            Alert::BundleDown => "bundle-down",
            Alert::BundleUp => "bundle-up",
        }
    }
}

/// An order for the driver, to be carried out at once. Orders for one line are carried out one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Dial this line.
    Dial(usize),
    /// Answer the call that comes in on this line.
    Answer(usize),
    /// The modem of this line is connected: set the link up.
    StartLink(usize),
    /// End the call of this line, or the attempt to dial it.
    HangUp(usize),
    /// The bundle ends: nothing of it may stay.
    TearDown,
    /// This line is the primary one from now on; none if no line is up.
    Primary(Option<usize>),
    /// Tell a person.
    Alert(Alert),
}

/// The answer of a dialler to an event: changes of state and orders, each in order.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    /// Changes of lines' states, for observers.
    pub changes: Vec<Change>,
    /// Orders for the driver.
    pub orders: Vec<Order>,
}
