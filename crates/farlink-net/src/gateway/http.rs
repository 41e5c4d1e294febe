//! HTTP, method CONNECT (RFC 9110, section 9.3.6), and the page with the metrics, by the crate `hyper`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::config::Listener;
use super::core::{Asked, Core, Opening};
use super::destination::Destination;
use super::frame::Refusal;
use super::requests::Request as Place;
use super::routes;

/// Longest head of a request.
const MOST_HEAD: usize = 16 * 1024;

/// The stream of a CONNECT that was answered with 200, and the connection that was opened for it.
type Upgrade = (OnUpgrade, Result<Asked, Opening>);

pub(super) async fn serve(core: &Core, listener: &Listener, tcp: TcpStream, request: Place) {
    let upgrade: Mutex<Option<Upgrade>> = Mutex::new(None);
    // What is taken when the request has come, and the mark of the client's packets.
    let request = (Mutex::new(Some(request)), core.dscp_of(&tcp));
    let service = service_fn(|asked: Request<Incoming>| {
        let (upgrade, request) = (&upgrade, &request);
        async move {
            let answered = answer(core, listener, asked, request).await;
            let (status, text) = match answered {
                Ok(ready) => {
                    *lock(upgrade) = Some(ready);
                    return Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()));
                }
                Err(refused) => refused,
            };
            core.metrics.bad_requests_total.add(1);
            let mut response = Response::builder().status(status).header(CONTENT_TYPE, "text/plain");
            if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
                response = response.header(PROXY_AUTHENTICATE, "Basic realm=\"farlink gateway\"");
            }
            Ok(response.body(Full::from(format!("{text}\n"))).expect("status and headers are constants"))
        }
    });
    let within = Duration::from_secs_f64(core.config().limits.request_s);
    let served = http1(within).serve_connection(TokioIo::new(tcp), service);
    if served.with_upgrades().await.is_err() {
        core.metrics.bad_requests_total.add(1);
        return;
    }
    let Some((upgraded, ready)) = lock(&upgrade).take() else { return };
    let Some(parts) = upgraded.await.ok().and_then(|it| it.downcast::<TokioIo<TcpStream>>().ok()) else { return };
    let tcp = parts.io.into_inner();
    match ready {
        Ok(asked) => asked.carry(core, tcp, &parts.read_buf).await,
        Err(opening) => opening.carry(core, tcp, &parts.read_buf).await,
    }
}

fn http1(within: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(within).keep_alive(false).max_buf_size(MOST_HEAD);
    http
}

async fn answer(
    core: &Core,
    listener: &Listener,
    mut asked: Request<Incoming>,
    (request, dscp): &(Mutex<Option<Place>>, u8),
) -> Result<Upgrade, (StatusCode, String)> {
    if let Some(passwords) = &listener.passwords
        && !credentials(&asked).is_some_and(|(name, password)| passwords.has(&name, &password))
    {
        return Err((StatusCode::PROXY_AUTHENTICATION_REQUIRED, "name and password are needed".into()));
    }
    if asked.method() != Method::CONNECT {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "only CONNECT is served; tunnel through this proxy".into()));
    }
    let destination = asked.uri().authority().map_or("", |it| it.as_str()).parse::<Destination>();
    let destination = destination.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let gone = || (StatusCode::SERVICE_UNAVAILABLE, "there is no connection to the other gateway".to_owned());
    drop(lock(request).take());
    let place = core.place().ok_or_else(|| {
        core.metrics.turned_away_total.add(1);
        (StatusCode::SERVICE_UNAVAILABLE, "this gateway has no room for more connections".to_owned())
    })?;
    core.turn(&listener.to, true).await;
    let opening = core.open(&listener.to, destination, *dscp, place).ok_or_else(gone)?;
    let ready = if listener.wait {
        Ok(opening.ask(core).await.map_err(|why| (status_of(why), why.text().to_owned()))?)
    } else {
        Err(opening)
    };
    Ok((hyper::upgrade::on(&mut asked), ready))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Name and password of a request (RFC 7617).
fn credentials(asked: &Request<Incoming>) -> Option<(String, String)> {
    let given = asked.headers().get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = given.split_once(' ')?;
    let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(encoded.trim()).ok())??;
    let (name, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

fn status_of(why: Refusal) -> StatusCode {
    match why {
        Refusal::NotAllowed => StatusCode::FORBIDDEN,
        Refusal::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Refusal::Full => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Serves the metrics until it is aborted.
pub(super) async fn serve_metrics(core: Arc<Core>, socket: TcpListener) {
    loop {
        let Ok((tcp, from)) = socket.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (request, gives_way) = core.scrapes.begin(from.ip());
        let core = core.clone();
        tokio::spawn(async move {
            let service = service_fn(|asked: Request<Incoming>| {
                let is_it = asked.method() == Method::GET && asked.uri().path() == "/metrics";
                let custody = || core.custody.as_deref().map(routes::metrics).unwrap_or_default();
                let text = if is_it { core.metrics.to_text() + &custody() } else { "GET /metrics\n".to_owned() };
                let status = if is_it { StatusCode::OK } else { StatusCode::NOT_FOUND };
                let response = Response::builder().status(status).header(CONTENT_TYPE, "text/plain; version=0.0.4");
                let response = response.body(Full::new(Bytes::from(text))).expect("status and header are constants");
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let within = Duration::from_secs_f64(core.config().limits.request_s);
            let served = http1(within).serve_connection(TokioIo::new(tcp), service);
            let served = async {
                let _ = tokio::time::timeout(2 * within, served).await;
                drop(request);
            };
            tokio::select! {
                () = served => {}
                () = gives_way.wait() => {}
            }
        });
    }
}
