//! SOCKS5, command CONNECT (RFC 1928, RFC 1929), by the crate `fast-socks5`.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fast_socks5::server::{Socks5ServerProtocol, SocksServerError, states};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::config::Listener;
use super::core::Core;
use super::destination::{Destination, Host};
use super::frame::Refusal;
use super::passwords::Passwords;
use super::requests::Request;

type Asked<T> = (Socks5ServerProtocol<T, states::CommandRead>, Destination);

pub(super) async fn serve(core: &Core, listener: &Listener, tcp: TcpStream, request: Request) {
    let within = Duration::from_secs_f64(core.config().limits.request_s);
    let dscp = core.dscp_of(&tcp);
    let Ok(Ok((client, destination))) = timeout(within, read(listener.passwords.as_ref(), tcp)).await else {
        core.metrics.bad_requests_total.add(1);
        return;
    };
    drop(request);
    let Some(place) = core.place() else {
        core.metrics.turned_away_total.add(1);
        let _ = client.reply_error(&reply_to(Refusal::Full)).await;
        return;
    };
    core.turn(&listener.to, true).await;
    let Some(opening) = core.open(&listener.to, destination, dscp, place) else {
        let _ = client.reply_error(&ReplyError::GeneralFailure).await;
        return;
    };
    let asked = if listener.wait {
        match opening.ask(core).await {
            Ok(asked) => Ok(asked),
            Err(why) => {
                let _ = client.reply_error(&reply_to(why)).await;
                return;
            }
        }
    } else {
        Err(opening)
    };
    // The address of the far end is not the client's concern.
    let Ok(tcp) = client.reply_success(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).await else { return };
    match asked {
        Ok(asked) => asked.carry(core, tcp, &[]).await,
        Err(opening) => opening.carry(core, tcp, &[]).await,
    }
}

/// The request of a client. A wrong one was answered here.
pub(super) async fn read<T: AsyncRead + AsyncWrite + Unpin>(
    passwords: Option<&Passwords>,
    tcp: T,
) -> Result<Asked<T>, SocksServerError> {
    let client = match passwords {
        None => Socks5ServerProtocol::accept_no_auth(tcp).await?,
        Some(passwords) => {
            let check = |name: String, password: String| passwords.has(&name, &password).then_some(());
            Socks5ServerProtocol::accept_password_auth(tcp, check).await?.0
        }
    };
    let (client, command, target) = client.read_command().await?;
    if command != Socks5Command::TCPConnect {
        client.reply_error(&ReplyError::CommandNotSupported).await?;
        return Err(SocksServerError::UnknownCommand(0));
    }
    let destination = match target {
        TargetAddr::Ip(address) => Some(Destination::from(address)),
        TargetAddr::Domain(name, port) => Host::parse(&name).ok().map(|host| Destination { host, port }),
    };
    match destination.filter(|it| it.port != 0) {
        Some(destination) => Ok((client, destination)),
        None => {
            client.reply_error(&ReplyError::HostUnreachable).await?;
            Err(SocksServerError::UnknownCommand(0))
        }
    }
}

fn reply_to(why: Refusal) -> ReplyError {
    match why {
        Refusal::NotAllowed => ReplyError::ConnectionNotAllowed,
        Refusal::UnknownHost | Refusal::HostUnreachable => ReplyError::HostUnreachable,
        Refusal::NetworkUnreachable => ReplyError::NetworkUnreachable,
        Refusal::ConnectionRefused => ReplyError::ConnectionRefused,
        Refusal::TimedOut => ReplyError::TtlExpired,
        Refusal::Other | Refusal::Full => ReplyError::GeneralFailure,
    }
}
