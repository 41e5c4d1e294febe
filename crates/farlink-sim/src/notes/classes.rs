//! Classes of service without effect.

use farlink_core::scenario::{Flow, Hop, Scenario};

use super::{Point, Remark};

/// Classes without a queue that serves them, or such a queue without classes, at all points.
pub(super) fn idle_classes(study: &[Point<'_>]) -> Option<Remark> {
    let mut scenarios = study.iter().map(|point| point.scenario);
    let flows = || study.iter().flat_map(|point| &point.scenario.flow);
    let hops = || study.iter().flat_map(|point| point.scenario.hops());
    let serves = |hop: &Hop| [hop.forward(), hop.back()].iter().any(|way| way.service.weights().is_some());
    let serving = hops().find(|(_, hop)| serves(hop));
    let class = |flow: &Flow| flow.class.whole();
    let is_one_class = |scenario: &Scenario| {
        let mut classes = scenario.flow.values().map(class);
        let first = classes.next();
        classes.all(|class| Some(class) == first)
    };
    match (serving, flows().find(|(_, flow)| class(flow) > 0)) {
        // A bundle of paths always serves classes, and most often has one.
        _ if hops().any(|(_, hop)| hop.paths.is_some()) => None,
        (None, Some((name, flow))) => Some(Remark::new(
            format!("flow.{name}.class"),
            format!(
                "= {} makes no difference: no hop serves classes; give one service = \"strict\", or weights",
                class(flow),
            ),
        )),
        (Some((name, _)), _) if scenarios.all(is_one_class) => {
            let table = if study.iter().any(|point| point.scenario.link.is_some()) {
                name.to_owned()
            } else {
                format!("hop.{name}")
            };
            Some(Remark::new(
                format!("{table}.service"),
                "makes no difference: all flows are of one class; give some a class of their own",
            ))
        }
        _ => None,
    }
}
