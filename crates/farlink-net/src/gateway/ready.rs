//! Sessions with other gateways that are open before a client needs them. `[Y27]`
//!
//! Until an address is proven an answer may have three times the bytes that came ([Y8]), so that the first request of a session
//! with a longer one would take two round trips. And the handshake is over before data come.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::seal::PublicKey;

use super::core::Core;

/// A session that nobody uses is asked so often; it is forgotten after three such times.
const EVERY: Duration = Duration::from_secs(40);
/// How long the first answer is waited for; then twice as long each time.
const FIRST: Duration = Duration::from_secs(1);

/// Keeps the sessions that the present configuration wants.
pub(super) async fn keep(core: Arc<Core>) {
    let config = core.config();
    let mut all = JoinSet::new();
    for peer in config.peers.values().filter(|peer| peer.ready) {
        if let Some(address) = peer.address {
            all.spawn(keep_one(core.clone(), peer.key, address));
        }
    }
    while all.join_next().await.is_some() {}
}

async fn keep_one(core: Arc<Core>, key: PublicKey, address: SocketAddr) {
    let mut wait = FIRST;
    loop {
        match core.endpoint.keep_session(&key, address) {
            Ok(true) => {
                sleep(EVERY).await;
                wait = FIRST;
                continue;
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, %address, "no session with the other gateway"),
        }
        sleep(wait).await;
        wait = (2 * wait).min(EVERY);
    }
}
