//! For the fuzzer: random numbers that repeat, so that an input does the same each time, and key agreements that are remembered from
//! one input to the next. The target `mux` spent two thirds of its time in key agreements before.

use std::cell::RefCell;
use std::collections::BTreeMap;

use farlink_core::rng::{RandomSource, SplitMix64};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};

type Key = [u8; 32];

/// Key agreements that are remembered. Public keys that the fuzzer damaged would make them grow without end.
const MOST_REMEMBERED: usize = 4096;

thread_local! {
    static RANDOM: RefCell<SplitMix64> = RefCell::new(SplitMix64::new(0));
    /// Ephemeral keys are numbered apart, so that those of one input are those of the next.
    static EPHEMERAL_KEYS: RefCell<u64> = const { RefCell::new(0) };
    static PUBLIC_KEYS: RefCell<BTreeMap<Key, Key>> = const { RefCell::new(BTreeMap::new()) };
    static AGREEMENTS: RefCell<BTreeMap<(Key, Key), Key>> = const { RefCell::new(BTreeMap::new()) };
}

/// All random numbers and ephemeral keys begin anew.
pub fn restart() {
    RANDOM.replace(SplitMix64::new(0));
    EPHEMERAL_KEYS.replace(0);
}

/// Fills a buffer.
pub(crate) fn fill(out: &mut [u8]) {
    RANDOM.with_borrow_mut(|random| {
        for chunk in out.chunks_mut(8) {
            chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
        }
    });
}

/// Algorithms that snow computes with.
pub(super) fn resolver() -> BoxedCryptoResolver {
    Box::new(Repeatable)
}

struct Repeatable;

impl CryptoResolver for Repeatable {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(EphemeralKeys))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(Remembered::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

struct EphemeralKeys;

impl Random for EphemeralKeys {
    fn try_fill_bytes(&mut self, key: &mut [u8]) -> Result<(), snow::Error> {
        EPHEMERAL_KEYS.with_borrow_mut(|count| {
            *count += 1;
            key.fill(0x40); // X25519 ignores some bits of the first and the last byte.
            key[8..16].copy_from_slice(&count.to_le_bytes());
        });
        Ok(())
    }
}

/// A key pair of X25519.
#[derive(Default)]
struct Remembered {
    private: Key,
    public: Key,
}

impl Remembered {
    fn x25519(&self) -> Box<dyn Dh> {
        let mut pair = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("snow is built with X25519");
        pair.set(&self.private);
        pair
    }
}

impl Dh for Remembered {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = remembered(&PUBLIC_KEYS, self.private, || {
            self.x25519().pubkey().try_into().expect("keys of X25519 have 32 bytes")
        });
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = Key::default();
        random.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public: Key = public[..32].try_into().expect("32 bytes");
        let shared = remembered(&AGREEMENTS, (self.private, public), || {
            let mut shared = Key::default();
            self.x25519().dh(&public, &mut shared).expect("X25519 takes any key");
            shared
        });
        out[..32].copy_from_slice(&shared);
        Ok(())
    }
}

fn remembered<K: Ord>(
    all: &'static std::thread::LocalKey<RefCell<BTreeMap<K, Key>>>,
    of: K,
    compute: impl FnOnce() -> Key,
) -> Key {
    all.with_borrow_mut(|all| {
        if all.len() >= MOST_REMEMBERED {
            all.clear();
        }
        *all.entry(of).or_insert_with(compute)
    })
}
