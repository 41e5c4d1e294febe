//! Gateways that are killed by SIGKILL at random times, in the middle of a stream.

use super::*;

/// How many times: a dozen in tests, `FARLINK_CUSTODY_KILLS` in longer ones.
fn kills() -> u32 {
    std::env::var("FARLINK_CUSTODY_KILLS").map_or(12, |text| text.parse().unwrap())
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Data that a gateway has acknowledged arrives once, whole and in order. `[N2]`, `[N4]`, `[N5]`
#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_nothing_and_repeat_nothing() {
    let seed = std::env::var("SEED").map_or(1, |text| text.parse().unwrap());
    let mut random = Random(seed);
    let hosts = Hosts::new(2);
    let mut gateways = [hosts.gateway(0, "stream_bytes = 1000000"), hosts.gateway(1, "stream_bytes = 1000000")];
    gateways.iter_mut().for_each(Gateway::start);
    let (_at, mut sink) = hosts.sink();
    let (_from, mut source) = hosts.source(500_000);
    let progress = source.progress();
    let reading = tokio::spawn(async move {
        let mut stream = sink.accept().await.unwrap();
        let read = read_all(&mut stream).await;
        assert!(tokio::time::timeout(Duration::from_secs(2), sink.accept()).await.is_err(), "no stream comes twice");
        read
    });
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let writing = tokio::spawn(async move {
        let mut written = 0;
        let mut size = 1;
        while stopped.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            size = size * 7 % 30_011;
            source.write(content(written, size)).await.unwrap();
            written += size as u64;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let kept = source.kept();
        assert!(kept <= written);
        source.finish().await.unwrap();
        written
    });
    // A new session takes a second if its first packet comes too early. Some kills come before that, most come later.
    let (mut kept, mut were_under_way) = (0, 0);
    for kill in 0..kills() {
        let most = if random.below(4) == 0 { 500 } else { 4000 };
        tokio::time::sleep(Duration::from_millis(random.below(most))).await;
        let now = *progress.borrow();
        were_under_way += u32::from(now > kept);
        kept = now;
        let gateway = &mut gateways[random.below(2) as usize];
        gateway.kill();
        // Sometimes it stays away for a while.
        tokio::time::sleep(Duration::from_millis([0, 0, 300][random.below(3) as usize])).await;
        gateway.start();
        if kill % 20 == 19 {
            println!("{} kills, {kept} bytes kept", kill + 1);
        }
    }
    drop(stop);
    let written = tokio::time::timeout(WITHIN, writing).await.expect("the source ends").unwrap();
    let read = tokio::time::timeout(WITHIN, reading).await.expect("the sink ends").unwrap();
    println!(
        "{} kills, {were_under_way} of them under way, seed {seed}: {written} bytes written, {read} read",
        kills()
    );
    assert_eq!(read, written);
    assert!(were_under_way >= kills() / 3, "the stream was under way at {were_under_way} kills");
    for number in 0..2 {
        let log = hosts.log(number);
        assert!(!log.contains("panicked") && !log.contains("ENDED"), "gateway {number}: {log}");
    }
}
