//! One line makes a thing known to the scenario parser, the schema, the error messages and the tests.

/// Declares a family of things chosen by `kind`, each a configuration type in a file of its own.
///
/// Gives an enum with one variant per line that parses from a table with a `kind` key, its JSON Schema, the list of names
/// (`KINDS`), and `as_dyn` to reach the trait that all of them implement.
macro_rules! registry {
    (
        $(#[$doc:meta])*
        $family:ident: $enum:ident as $trait:ident {
            $($variant:ident = $kind:literal => $config:path,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum $enum {
            $(
                #[doc = concat!("`kind = \"", $kind, "\"`")]
                #[serde(rename = $kind)]
                $variant($config),
            )+
        }

        impl $enum {
            /// Every known kind.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// Its name in a scenario.
            pub fn kind(&self) -> &'static str {
                match self { $($enum::$variant(_) => $kind,)+ }
            }

            /// What all of the family can do.
            pub fn as_dyn(&self) -> &dyn $trait {
                match self { $($enum::$variant(config) => config,)+ }
            }
        }
    };
}
pub(crate) use registry;
