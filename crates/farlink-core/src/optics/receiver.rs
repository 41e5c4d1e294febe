//! Receivers of intensity-modulated light: bit error rate from received power.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::scenario::suggest;
use crate::units::{BitRate, FormFactor, Power};

/// A direct-detection receiver of on-off keyed light, described by two parameters.
///
/// Bit error rate at received power P: Q(x) with x = (P / P_0) / (1 + sqrt(1 + xi_0 P / P_0)), where Q is the tail of the normal
/// distribution. The combined noise of signal and background leads to this form: `form_factor` 0 is a receiver with thermal noise
/// only, and with a large one the shot noise of the signal dominates. B. Epple, "Performance optimization of free-space optical
/// communication protocols based on results from FSO demonstrations", eqs. (1) and (2), after N. Perlot, Optical Engineering
/// 46(2), 025003 (2007), and F. David, Proc. SPIE 5338 (2004).
///
/// The parameters hold for one data rate and cannot be scaled to others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receiver {
    /// Characteristic power P_0, in W.
    pub characteristic_power_w: Power,
    /// Form factor xi_0.
    pub form_factor: FormFactor,
    /// Data rate for which the parameters were determined, in bit/s; unless given, they are used for any rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<BitRate>,
}

impl Receiver {
    /// Probability of a bit error at a received power in W, from 0 to 1/2; 1/2 without power.
    pub fn ber(&self, power_w: f64) -> f64 {
        let power = power_w / self.characteristic_power_w.get();
        let argument = power / (1.0 + (1.0 + self.form_factor.get() * power).sqrt());
        0.5 * libm::erfc(argument * std::f64::consts::FRAC_1_SQRT_2)
    }

    /// The power in W at which the bit error rate is `ber`: the inverse of [`ber`](Receiver::ber). NaN unless the rate is above 0
    /// and at most 1/2.
    pub fn power_w(&self, ber: f64) -> f64 {
        let argument = normal_tail_inverse(ber);
        // x (1 + sqrt(1 + xi u)) = u, solved for u = P / P_0.
        (2.0 * argument + self.form_factor.get() * argument * argument) * self.characteristic_power_w.get()
    }
}

/// x with Q(x) = `tail`, for tails above 0 up to 1/2.
fn normal_tail_inverse(tail: f64) -> f64 {
    if !(tail > 0.0 && tail <= 0.5) {
        return f64::NAN;
    }
    // Newton's method on ln Q, which is concave and nearly a parabola: it converges from below in a few steps.
    let logarithm = libm::log(tail);
    let mut x = (-2.0 * libm::log(2.0 * tail)).max(0.0).sqrt();
    for _ in 0..60 {
        let q = 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
        let step = (libm::log(q) - logarithm) * q / density;
        if !step.is_finite() {
            break;
        }
        x += step;
        if step.abs() <= 1e-15 * (1.0 + x) {
            break;
        }
    }
    x.max(0.0)
}

/// A receiver with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name in a scenario.
    pub name: &'static str,
    /// Description.
    pub title: &'static str,
    /// Characteristic power, W.
    pub characteristic_power_w: f64,
    /// Form factor.
    pub form_factor: f64,
    /// Data rate of the parameters, bit/s.
    pub rate_bps: f64,
    /// Wavelength, m.
    pub wavelength_m: f64,
    /// Source of the parameters.
    pub source: &'static str,
}

/// The receivers with names, one entry each.
pub const RECEIVERS: &[Named] = &[Named {
    name: "frm5w621",
    title: "Fujitsu FRM5W621KT/LT, avalanche photodiode with preamplifier",
    characteristic_power_w: 1.35e-9,
    form_factor: 0.8,
    rate_bps: 622e6,
    wavelength_m: 1550e-9,
    source: "B. Epple, section 2.2",
}];

impl Named {
    /// Its parameters.
    pub fn receiver(&self) -> Receiver {
        const RANGE: &str = "a constant within its range";
        Receiver {
            characteristic_power_w: Power::new(self.characteristic_power_w).expect(RANGE),
            form_factor: FormFactor::new(self.form_factor).expect(RANGE),
            rate_bps: Some(BitRate::new(self.rate_bps).expect(RANGE)),
        }
    }
}

/// The configuration of a receiver: a name, or a table of its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverSetting {
    /// One of [`RECEIVERS`], by its index.
    Known(usize),
    /// A receiver with given parameters.
    Custom(Receiver),
}

impl Default for ReceiverSetting {
    /// The reference receiver of Epple.
    fn default() -> Self {
        ReceiverSetting::Known(0)
    }
}

impl ReceiverSetting {
    /// Its parameters.
    pub fn receiver(&self) -> Receiver {
        match self {
            ReceiverSetting::Known(index) => RECEIVERS[*index].receiver(),
            ReceiverSetting::Custom(receiver) => *receiver,
        }
    }
}

impl fmt::Display for ReceiverSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiverSetting::Known(index) => f.write_str(RECEIVERS[*index].name),
            ReceiverSetting::Custom(_) => f.write_str("this receiver"),
        }
    }
}

impl Serialize for ReceiverSetting {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReceiverSetting::Known(index) => serializer.serialize_str(RECEIVERS[*index].name),
            ReceiverSetting::Custom(receiver) => receiver.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ReceiverSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = ReceiverSetting;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a receiver, or a table { characteristic_power_w = ..., form_factor = ... }")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                let index = RECEIVERS.iter().position(|receiver| receiver.name == name);
                index.map(ReceiverSetting::Known).ok_or_else(|| {
                    let known = suggest(name, "receivers", RECEIVERS.iter().map(|receiver| receiver.name));
                    E::custom(format!("there is no receiver \"{name}\"; {known}"))
                })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                Receiver::deserialize(MapAccessDeserializer::new(table)).map(ReceiverSetting::Custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for ReceiverSetting {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReceiverSetting".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = RECEIVERS.iter().map(|receiver| receiver.name).collect();
        schemars::json_schema!({"anyOf": [{"enum": names}, generator.subschema_for::<Receiver>()]})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference() -> Receiver {
        ReceiverSetting::default().receiver()
    }

    /// 27.58 P_0 = 37.2 nW give a bit error rate of 1e-6.
    #[test]
    fn the_reference_receiver_has_its_test_value() {
        let power = reference().power_w(1e-6);
        assert!((power / 1.35e-9 - 27.58).abs() < 0.005, "{power}");
        assert!((reference().ber(power) / 1e-6 - 1.0).abs() < 1e-12);
        assert_eq!(reference().ber(0.0), 0.5);
        assert_eq!(reference().power_w(0.5), 0.0);
    }

    /// Against tables of the normal distribution.
    #[test]
    fn without_shot_noise_the_argument_is_half_the_power() {
        let thermal = Receiver { form_factor: FormFactor::new(0.0).unwrap(), ..reference() };
        for (x, tail) in
            [(1.0, 0.158_655_253_931_457_05), (3.0, 1.349_898_031_630_094_5e-3), (6.0, 9.865_876_450_376_98e-10)]
        {
            assert!((thermal.ber(2.0 * x * 1.35e-9) / tail - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn error_rates_that_no_power_gives_return_none() {
        for ber in [0.0, -1e-3, 0.6, f64::NAN] {
            assert!(reference().power_w(ber).is_nan(), "{ber}");
        }
    }

    proptest! {
        #[test]
        fn power_and_error_rate_are_inverse(exponent in -300.0..-0.31f64, form_factor in 0.0..100.0f64) {
            let receiver = Receiver { form_factor: FormFactor::new(form_factor).unwrap(), ..reference() };
            let ber = 10f64.powf(exponent);
            let again = receiver.ber(receiver.power_w(ber));
            prop_assert!((again / ber - 1.0).abs() < 1e-9, "{ber} became {again}");
        }

        #[test]
        fn more_power_never_hurts(power in 0.0..1e-6f64, more in 0.0..1e-6f64) {
            prop_assert!(reference().ber(power + more) <= reference().ber(power));
        }
    }
}
